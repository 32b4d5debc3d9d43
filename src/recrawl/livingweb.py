"""`python -m recrawl.livingweb`: serve a living web on loopback, or a hostile one."""

import sys

from recrawl.lab.livingweb.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
