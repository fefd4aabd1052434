package api

// MaxShellMessage limits one message from a shell's client, in bytes.
const MaxShellMessage = 64 << 10

// ShellStart describes what a shell's client wants to run.
type ShellStart struct {
	Command  string `json:"command,omitempty"`  // for the user's shell to run; empty: that shell itself
	Terminal string `json:"terminal,omitempty"` // its type, as in TERM; empty: none
	ShellSize
}

// ShellSize is the size of a terminal, in characters.
type ShellSize struct {
	Columns uint16 `json:"columns,omitempty"`
	Rows    uint16 `json:"rows,omitempty"`
}

// ShellInput is a text message from a shell's client; exactly one field is set.
type ShellInput struct {
	Start  *ShellStart `json:"start,omitempty"`
	Resize *ShellSize  `json:"resize,omitempty"`
	EOF    bool        `json:"eof,omitempty"` // of standard input
}

// ShellOutput is a text message to a shell's client; exactly one field is set.
type ShellOutput struct {
	Stderr []byte     `json:"stderr,omitempty"`
	Exit   *ShellExit `json:"exit,omitempty"` // the last message
}

// ShellExit is the exit status of what ran in a shell.
type ShellExit struct {
	Code   int64  `json:"code"`
	Signal string `json:"signal,omitempty"` // the signal that ended it, without SIG; Code is then 0
}
