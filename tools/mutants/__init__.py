"""Plant errors one at a time, run the tests that should notice, and list those that none did."""
