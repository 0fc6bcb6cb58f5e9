"""Beyond position: panels of judges, people, and rankings of models; one table each."""
