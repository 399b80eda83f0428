"""Serves the rules of `hunt` with the token in a file: python worker.py ADDRESS TOKEN_FILE CA."""

import sys

from hunt import Hunt

address, token_file, ca = sys.argv[1:4]
with open(token_file, encoding="utf-8") as file:
    token = file.read().strip()
Hunt(address, "wood", "hunt.py", token, ca).run()
