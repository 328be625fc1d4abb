package autodiff

func moveRules() []Rule { return nil }
