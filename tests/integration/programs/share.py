"""Takes 256 MiB, then lets a second process of the same lease take whatever is left, and prints what that one said."""

import subprocess
import sys

from tests.integration.programs import driver

driver.open_context()
held = driver.allocate(256 << 20)
driver.write_words(held, [7])
command = [sys.executable, "-m", "tests.integration.programs.exhaust"]
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip(), driver.read_words(held, 1)[0])
