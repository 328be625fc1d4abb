package autodiff

func attentionRules() []Rule { return nil }
