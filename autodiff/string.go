package autodiff

func stringRules() []Rule { return nil }
