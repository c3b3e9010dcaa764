"""What the check scripts share: reading sources, manifests and lock files. Nothing in here needs a package that Python lacks."""
