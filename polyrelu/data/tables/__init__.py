"""Tables in files: .csv, .parquet, .npz, .npy, .safetensors."""
