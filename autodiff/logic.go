package autodiff

func logicRules() []Rule { return nil }
