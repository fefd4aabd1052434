package main

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// options returns the table of the options whose values are in gpu/soft/model.
func options() string {
	quoted := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	return "| option | values | what |\n|---|---|---|\n" +
		"| `model` | " + quoted(model.Names()) + " | the card that it says it is, with its limits; it computes no faster by that |\n" +
		"| `engine` | " + quoted(model.Engines()) + " | how instructions run |\n" +
		"| `check` | " + "`memory`, `race`, `init`, or several, as in `check=memory,race` | ends kernels that make such mistakes ([operations.md](operations.md)); the kernels are interpreted, several times slower |\n" +
		"| `fault` | " + quoted(model.Faults()) + " | what is wrong with it, for tests and demonstrations |\n"
}
