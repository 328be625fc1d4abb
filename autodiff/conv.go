package autodiff

func convRules() []Rule { return nil }
