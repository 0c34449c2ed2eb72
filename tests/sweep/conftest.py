"""The functions in swept.py can be imported by the tests and, since sys.path is handed over, by every worker."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
