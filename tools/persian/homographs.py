"""Which words stand near each reading of a homograph, from HomoRich."""
