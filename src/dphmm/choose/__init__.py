"""What to set: schedules, budgets, covered distances and cells, tried on people whom the public model invents."""
