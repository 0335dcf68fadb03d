"""The COCO sample in the repository: licences, files, geometry."""
import json
from pathlib import Path

import cv2
import pytest
from pycocotools.coco import COCO

SAMPLE = Path(__file__).parent / 'data' / 'coco_sample'
FREE_LICENSES = {4, 5, 7, 8}


@pytest.fixture(
    params=['annotations.json', 'annotations_train16.json'], scope='module')
def coco(request):
    return COCO(str(SAMPLE / request.param))


def test_every_licence_allows_shipping_a_resized_copy(coco):
    named = {entry['id'] for entry in coco.dataset['licenses']}
    used = {image['license'] for image in coco.imgs.values()}
    assert used <= FREE_LICENSES
    assert used <= named


def test_files_have_the_stated_size(coco):
    for image in coco.imgs.values():
        pixels = cv2.imread(str(SAMPLE / 'images' / image['file_name']))
        assert pixels is not None, image['file_name']
        assert pixels.shape[:2] == (image['height'], image['width'])


def test_boxes_lie_inside_their_image(coco):
    for ann in coco.anns.values():
        image = coco.imgs[ann['image_id']]
        x, y, w, h = ann['bbox']
        assert w > 0 and h > 0
        assert 0 <= x and x + w <= image['width'] + 0.01, ann['id']
        assert 0 <= y and y + h <= image['height'] + 0.01, ann['id']


def test_masks_agree_with_area_and_box(coco):
    for ann in coco.anns.values():
        mask = coco.annToMask(ann)
        # A mask is whole pixels: its error grows with the outline it rounds.
        x, y, w, h = ann['bbox']
        slack = 1 + 0.02 * ann['area'] + 0.3 * (w + h)
        assert abs(int(mask.sum()) - ann['area']) <= slack, ann['id']
        assert mask[max(int(y) - 1, 0):int(y + h) + 2,
                    max(int(x) - 1, 0):int(x + w) + 2].sum() == mask.sum()


def test_the_16_are_an_unchanged_subset():
    whole, part = (
        json.loads((SAMPLE / name).read_text())
        for name in ('annotations.json', 'annotations_train16.json'))
    ids = {image['id'] for image in part['images']}
    assert len(ids) == 16
    for kind, key in (('images', 'id'), ('annotations', 'image_id')):
        assert part[kind] == [x for x in whole[kind] if x[key] in ids]


def test_every_image_is_attributed(coco):
    text = (SAMPLE / 'ATTRIBUTION.md').read_text()
    for image in coco.imgs.values():
        row = next(line for line in text.splitlines()
                   if line.startswith(f"| {image['file_name']} |"))
        assert image['coco_url'] in row and image['flickr_url'] in row


def test_all_80_categories_are_listed_in_coco_order(coco):
    ids = [category['id'] for category in coco.dataset['categories']]
    assert len(ids) == 80 and ids == sorted(ids)
