"""How long selection and training take, and how that grows."""
