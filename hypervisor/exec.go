package hypervisor

import "strings"

// Validate says what is wrong with the program: an *api.Error, or nil.
func (e Exec) Validate() error {
	switch {
	case len(e.Argv) == 0 || e.Argv[0] == "":
		return invalid("argv", "no program named")
	case len(e.Argv)+len(e.Env) > MaxExecArgs:
		return invalid("argv", "more than %d arguments and variables", MaxExecArgs)
	case len(e.Stdin) > MaxExecInput:
		return invalid("stdin", "%d bytes are more than %d", len(e.Stdin), MaxExecInput)
	case e.MaxOutput < 0 || e.MaxOutput > MaxExecOutput:
		return invalid("maxOutput", "%d is not between 0 and %d", e.MaxOutput, MaxExecOutput)
	}
	for _, s := range append(append([]string(nil), e.Argv...), e.Env...) {
		if strings.ContainsRune(s, 0) {
			return invalid("argv", "a zero byte in an argument")
		}
	}
	return nil
}

// OutputLimit is the most bytes kept of each of stdout and stderr.
func (e Exec) OutputLimit() int {
	if e.MaxOutput == 0 {
		return MaxExecOutput
	}
	return e.MaxOutput
}
