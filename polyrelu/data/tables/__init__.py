"""People's own tables: .csv, .parquet, .npz, .npy, .safetensors."""
