package op

func attentionDefs() []Def { return nil }
