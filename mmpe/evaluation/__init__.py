"""COCO mAP reports that say whether a swap helped, and how sure that is."""
