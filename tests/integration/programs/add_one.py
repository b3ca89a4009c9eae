"""Increments 256 numbers on the GPU and prints the sum: the smallest program that uses everything on the way."""

from tests.integration.programs import driver

driver.open_context()
numbers = driver.allocate(4 * 256)
driver.write_words(numbers, list(range(256)))
driver.increment(driver.load_increment(), numbers, 256, rounds=3)
print(sum(driver.read_words(numbers, 256)) - sum(range(256)))
