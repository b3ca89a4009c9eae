"""Trains a small convolutional network on the scanned digits of scikit-learn with tinygrad, on whatever CUDA driver it finds.

    weft run -n 1 -p 0.5 --stats -- python examples/train_digits.py

1,797 images of 8x8 pixels; every fifth is held out for the test. Nothing in here knows of Weft.
"""

import argparse
import json
import os
import sys
import time

# tinygrad reads these when it is imported: its CUDA back end, which writes PTX itself; kernels launched one by one.
os.environ.setdefault("DEV", "CUDA:PTX")
os.environ.setdefault("JIT", "2")

import numpy as np
from sklearn.datasets import load_digits
from tinygrad import Context, Tensor, TinyJit, nn

CHANNELS = 16


class DigitNet:
    """Two 3x3 convolutions with pooling in between, then one linear layer to the ten classes."""

    def __init__(self) -> None:
        self.first = nn.Conv2d(1, CHANNELS, 3, padding=1)
        self.second = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
        self.classes = nn.Linear(CHANNELS * 4, 10)

    def __call__(self, images: Tensor) -> Tensor:
        hidden = self.first(images).relu().max_pool2d(2)
        hidden = self.second(hidden).relu().max_pool2d(2)
        return self.classes(hidden.flatten(1))


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images scaled to 0..1 and labels: for training, then held out."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int32)
    held_out = np.arange(len(labels)) % 5 == 4
    return images[~held_out], labels[~held_out], images[held_out], labels[held_out]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print the results as one JSON line")
    options = parser.parse_args()

    started = time.perf_counter()
    Tensor.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    train_images, train_labels, test_images, test_labels = load()
    network = DigitNet()
    optimizer = nn.optim.Adam(nn.state.get_parameters(network), lr=0.01)

    @TinyJit
    @Context(TRAINING=1)
    def step(images: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = network(images).sparse_categorical_crossentropy(labels).backward()
        return loss.realize(*optimizer.schedule_step())

    losses = []
    for number in range(options.steps):
        chosen = random.choice(len(train_labels), options.batch, replace=False)
        images, labels = Tensor(train_images[chosen]).realize(), Tensor(train_labels[chosen]).realize()
        losses.append(step(images, labels).item())
        if not options.json and (number % 25 == 0 or number == options.steps - 1):
            print(f"step {number:4d}  loss {losses[-1]:.4f}  {time.perf_counter() - started:5.1f} s", flush=True)

    predicted = network(Tensor(test_images)).argmax(axis=1).numpy()
    accuracy = float((predicted == test_labels).mean())
    if options.json:
        print(json.dumps({"losses": losses, "test_accuracy": accuracy, "test_images": len(test_labels), "steps": options.steps}))
    else:
        print(
            f"test accuracy {accuracy * 100:.2f} % on {len(test_labels)} held-out images, {time.perf_counter() - started:.1f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
