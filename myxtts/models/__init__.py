"""Networks: tensors in, named tensors out."""
