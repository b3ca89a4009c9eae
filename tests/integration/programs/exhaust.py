"""Takes memory in 64 MiB pieces until it is refused, gives some back, and goes on: prints what the slice holds."""

from tests.integration.programs import driver

PIECE = 64 << 20
driver.open_context()
total = driver.total_bytes()
pieces: list[driver.Address] = []
try:
    while len(pieces) * PIECE <= total:
        pieces.append(driver.allocate(PIECE))
except driver.CudaError as error:
    if error.code != driver.OUT_OF_MEMORY:
        raise
held = len(pieces)
driver.free(pieces.pop())
driver.synchronize()
again = driver.allocate(PIECE)
driver.write_words(again, [41])
driver.increment(driver.load_increment(), again, 1)
print(total >> 20, held * PIECE >> 20, driver.read_words(again, 1)[0])
