package autodiff

func imageRules() []Rule { return nil }
