"""Damaged files and bad arguments, by the ten thousand: a result or an `InputError`, nothing else.

python -m tools.fuzz                            10 000 files and 10 000 calls
python -m tools.fuzz --files 500 --only npz     one kind of file
python -m tools.fuzz --case "npz:1000017"       one case again, with its traceback

Kinds of files are in `tools.fuzz.readers`, whole files in `seeds`, ways to damage them in `damage`, `arrays`, `texts`
and `objects`. Public functions are found by `names`, called with `goods`, some of them replaced by `bads`. What counts
as a finding is said in `judge`. Every case has a name from which it can be made again.
"""
