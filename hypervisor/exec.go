package hypervisor

import "strings"

// Validate returns what is wrong with the program: an *api.Error, or nil.
func (e Exec) Validate() error {
	switch {
	case len(e.Argv) == 0 || e.Argv[0] == "":
		return invalid("argv", "the program name is missing")
	case len(e.Argv)+len(e.Env) > MaxExecArgs:
		return invalid("argv", "too many arguments and variables, want at most %d", MaxExecArgs)
	case len(e.Stdin) > MaxExecInput:
		return invalid("stdin", "%d bytes are too many, want at most %d", len(e.Stdin), MaxExecInput)
	case e.MaxOutput < 0 || e.MaxOutput > MaxExecOutput:
		return invalid("maxOutput", "%d is out of range, want 0 to %d", e.MaxOutput, MaxExecOutput)
	}
	for _, s := range append(append([]string(nil), e.Argv...), e.Env...) {
		if strings.ContainsRune(s, 0) {
			return invalid("argv", "an argument contains a zero byte")
		}
	}
	return nil
}

// OutputLimit returns how many bytes at most are kept of each of stdout and
// stderr.
func (e Exec) OutputLimit() int {
	if e.MaxOutput == 0 {
		return MaxExecOutput
	}
	return e.MaxOutput
}
