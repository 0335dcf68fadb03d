"""A sample in ADE20K's format, made from the COCO images that ship."""
from pathlib import Path
from typing import Optional

import numpy as np
from PIL import Image
from pycocotools.coco import COCO

SAMPLE = Path(__file__).parents[1] / 'tests/data/coco_sample'
CLASSES = ('background', 'person', 'bird', 'cat', 'bowl', 'banana', 'umbrella',
           'laptop', 'dining table')


def make_sample(root: Path, count: Optional[int] = None) -> None:
    """Write ``images/training`` and ``annotations/training``.

    As in ADE20K a label map has the number of a class and one, and 0 where
    there is no label; here what belongs to no class is background.

    Args:
        root (Path): A folder that isn't there yet.
        count (int, optional): How many images. Defaults to all 16.
    """
    coco = COCO(str(SAMPLE / 'annotations_train16.json'))
    numbers = {
        category['id']: CLASSES.index(category['name'])
        for category in coco.cats.values() if category['name'] in CLASSES
    }
    folders = [root / kind / 'training' for kind in ('images', 'annotations')]
    for folder in folders:
        folder.mkdir(parents=True)
    for image in list(coco.imgs.values())[:count]:
        name = Path(image['file_name'])
        labels = np.ones((image['height'], image['width']), np.uint8)
        for ann in coco.imgToAnns[image['id']]:
            if ann['category_id'] in numbers:
                labels[coco.annToMask(ann) > 0] = 1 + numbers[
                    ann['category_id']]
        (folders[0] / name.name).write_bytes(
            (SAMPLE / 'images' / name.name).read_bytes())
        Image.fromarray(labels).save(folders[1] / f'{name.stem}.png')
