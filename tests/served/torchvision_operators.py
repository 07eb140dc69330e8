"""Declares two operators that torchvision expects of the torch it was built for.

`bench_lib/install.py --vllm` puts this into an environment with the CPU build of vLLM.
"""

import importlib.abc
import sys


class _Declare(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            self.library = torch.library.Library("torchvision", "DEF")
            self.library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            self.library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            sys.torchvision_operators = self
        return None


sys.meta_path.insert(0, _Declare())
