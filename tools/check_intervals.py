"""How often the report's 95% intervals hold the true difference.

Detections are simulated: objects have a difficulty that all runs see, runs
have a quality with noise of the seed. The truth is what many images and seeds
give. Seeded; 1,000 trials take some minutes.
"""
from argparse import ArgumentParser, Namespace

import mmpe  # noqa: F401  first: it makes mmcv without ops importable
import numpy as np

from mmpe.evaluation.average_precision import average_precisions
from mmpe.evaluation.compare import difference, draw_images
from mmpe.evaluation.matching import THRESHOLDS, ClassMatches, Matches

CLASSES = 3
QUALITY = 0.0, 0.06  # of the baseline and of the method
SEED_NOISE = 0.04  # standard deviation of a run's quality


class Scenes:
    """Images with objects that are more or less hard to find."""

    def __init__(self, num_images: int, rng: np.random.Generator) -> None:
        self.num_images = num_images
        hard = rng.normal(0, 0.5, num_images)  # all of an image alike
        self.objects = []
        for _ in range(CLASSES):
            image = np.repeat(np.arange(num_images),
                              rng.poisson(0.8, num_images))
            self.objects.append(
                (image, hard[image] + rng.normal(0, 0.7, len(image))))

    def run(self, quality: float, rng: np.random.Generator) -> Matches:
        """What a run of this quality finds."""
        classes = []
        for image, hardness in self.objects:
            ease = quality - hardness + rng.normal(0, 0.4, len(image))
            overlap = 1 / (1 + np.exp(-1 - ease))
            seen = overlap > 0.3
            n = rng.poisson(0.8, self.num_images)  # background
            images = np.r_[image[seen], np.repeat(
                np.arange(self.num_images), n)]
            overlaps = np.r_[overlap[seen], np.zeros(n.sum())]
            score = np.r_[ease[seen] + rng.normal(0, 0.5, seen.sum()),
                          rng.normal(-1.2, 0.8, n.sum())]
            order = np.argsort(-score)
            classes.append(_matches(image, images[order], overlaps[order],
                                    score[order]))
        return Matches(self.num_images, classes)


def _matches(objects: np.ndarray, image: np.ndarray, overlap: np.ndarray,
             score: np.ndarray) -> ClassMatches:
    """All of one size, so that there is nothing of the others."""
    rank = np.flatnonzero(overlap >= THRESHOLDS[0])
    found = np.zeros((4, len(THRESHOLDS), len(rank)), bool)
    found[0] = overlap[rank] >= THRESHOLDS[:, None]
    inside = np.zeros((4, len(image)), bool)
    inside[0] = True
    counts = np.zeros((4, len(objects)), bool)
    counts[0] = True
    empty = np.zeros((len(THRESHOLDS), len(objects)), int)
    return ClassMatches(image, score, inside, rank, found,
                        np.zeros_like(found), objects, counts,
                        np.arange(len(objects)), empty, np.arange(len(image)))


def precision(matches: Matches, weights: np.ndarray = None) -> np.ndarray:
    """AP in points."""
    return 100 * average_precisions(matches, weights).mean('AP')


def truth(quality: float,
          rng: np.random.Generator,
          images: int,
          spread: float = SEED_NOISE) -> float:
    """AP of many images and seeds."""
    return float(np.mean([
        precision(Scenes(images, rng).run(quality + spread * z, rng))
        for z in rng.normal(0, 1, 60)
    ]))


def coverage(trials: int,
             seeds: int,
             images: int,
             resamples: int,
             truth_images: int = 4000,
             seed: int = 0) -> float:
    """The share of trials whose interval holds the truth.

    Args:
        trials (int): How many.
        seeds (int): Runs a side. With fewer than three the truth is that of
            the runs' own qualities.
        images (int): Of the data set of a trial.
        resamples (int): Of the bootstrap.
        truth_images (int): Of each of the 60 seeds that the truth is the
            mean of. Defaults to 4000.
        seed (int): Defaults to 0.
    """
    rng = np.random.default_rng(seed)
    # AP is all but linear in the quality over so little of it.
    grid = np.linspace(-0.2, 0.26, 5)
    curve = np.polyfit(
        grid, [truth(q, rng, truth_images, 0.) for q in grid], 2)
    true = [truth(q, rng, truth_images) for q in QUALITY]
    held = 0
    for trial in range(trials):
        scenes = Scenes(images, rng)
        drawn = draw_images(images, resamples, int(rng.integers(2**31)))
        sides, own_truth = [], []
        for quality in QUALITY:
            qualities = quality + SEED_NOISE * rng.normal(0, 1, seeds)
            runs = [scenes.run(q, rng) for q in qualities]
            sides.append((np.array([precision(r)[0] for r in runs]),
                          np.array([precision(r, drawn) for r in runs])))
            own_truth.append(np.polyval(curve, qualities).mean())
        d = difference(*sides[1], *sides[0], images)
        low, high = d.interval()
        wanted = true if d.covers_seeds else own_truth
        held += low <= wanted[1] - wanted[0] <= high
    return held / trials


def parse_args() -> Namespace:
    parser = ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--trials', type=int, default=1000)
    parser.add_argument('--images', type=int, default=300)
    parser.add_argument('--resamples', type=int, default=200)
    parser.add_argument('--seeds', type=int, nargs='+', default=[1, 3, 5])
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    for seeds in args.seeds:
        share = coverage(args.trials, seeds, args.images, args.resamples)
        print(f'{seeds} seeds a side: the 95% interval held the true '
              f'difference in {share:.1%} of {args.trials} trials', flush=True)


if __name__ == '__main__':
    main()
