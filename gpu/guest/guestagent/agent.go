// Package guestagent is a guest agent for images that have none. It serves the commands
// that Basalt sends on the virtio-serial port, and those that libvirt sends by itself. The
// protocol is that of QEMU's guest agent (QEMU's documentation, "QEMU Guest Agent Protocol
// Reference"): one JSON object per line, which are answered in order.
//
// The agent runs as root in the guest and trusts its host, which has full control of the
// guest anyway. Limits prevent a host's mistake from exhausting the guest's memory.
package guestagent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// Version is the agent's version in the answer to guest-info.
const Version = "1.0-basalt"

const (
	// maxLine is the maximum length of a command in bytes. It has room for a program's
	// input of 1 MiB in base64, and its arguments.
	maxLine = 4 << 20
	// delimiter precedes the answer to guest-sync-delimited, so that the client can discard
	// what came before it. It may also precede a command, to end an incomplete one.
	delimiter = 0xff
)

// Agent answers commands. It is not safe for concurrent use: one goroutine calls Serve.
type Agent struct {
	programs programs
	files    frozen
	start    func(*exec.Cmd) error
	// power changes the machine's state: "powerdown", "halt" or "reboot".
	power func(mode string) error
}

// New returns an agent for this machine.
func New() *Agent {
	return &Agent{programs: programs{all: map[int64]*program{}}, files: frozen{system: kernel{}}, start: (*exec.Cmd).Start, power: power}
}

// fault is an error in the protocol's form.
type fault struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

// generic returns an error of the class GenericError.
func generic(format string, args ...any) *fault {
	return &fault{"GenericError", fmt.Sprintf(format, args...)}
}

// request is a command of the host.
type request struct {
	Execute   string          `json:"execute"`
	Arguments json.RawMessage `json:"arguments"`
	ID        json.RawMessage `json:"id"`
}

// Serve answers the commands that it reads from r until the end of the input, for which it
// returns nil, or until reading or writing fails. Invalid commands are answered with an
// error.
func (a *Agent) Serve(r io.Reader, w io.Writer) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(lines)
		if len(bytes.TrimSpace(line)) > 0 {
			if answer := a.answer(line); answer != nil {
				if _, err := w.Write(answer); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, errLong) {
			return err
		}
	}
}

var errLong = errors.New("the command is too long")

// readLine reads a command. If it is longer than maxLine, it reads and discards the rest,
// and returns errLong with text that is not valid JSON, so that it is answered as such.
func readLine(r *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if !long {
			line = append(line, part...)
		}
		if len(line) > maxLine {
			line, long = nil, true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return line, err
		case long:
			return []byte("{"), errLong
		}
		if i := bytes.LastIndexByte(line, delimiter); i >= 0 {
			line = line[i+1:]
		}
		return line, nil
	}
}

// answer executes one command and returns the answer, or nil if the command has none.
func (a *Agent) answer(line []byte) []byte {
	var q request
	if err := json.Unmarshal(line, &q); err != nil {
		return encode(nil, nil, generic("decode command: %v", err))
	}
	c, known := commands[q.Execute]
	switch {
	case !known:
		return encode(q.ID, nil, &fault{"CommandNotFound", fmt.Sprintf("The command %.60s has not been found", q.Execute)})
	case a.files.frozen() && !c.whileFrozen:
		return encode(q.ID, nil, generic("the command %s is not allowed while file systems are frozen", q.Execute))
	}
	result, err := c.run(a, q.Arguments)
	if err != nil {
		return encode(q.ID, nil, err)
	}
	if c.silent {
		return nil
	}
	b := encode(q.ID, result, nil)
	if q.Execute == "guest-sync-delimited" {
		b = append([]byte{delimiter}, b...)
	}
	return b
}

// encode returns an answer as a line. The id comes from a JSON decoder, and result from a
// command of this package, so that encoding does not fail.
func encode(id json.RawMessage, result any, err *fault) []byte {
	out := map[string]any{}
	if err != nil {
		out["error"] = err
	} else {
		out["return"] = result
	}
	if id != nil {
		out["id"] = id
	}
	b, e := json.Marshal(out)
	if e != nil {
		b = []byte(`{"error":{"class":"GenericError","desc":"the answer cannot be encoded"}}`)
	}
	return append(b, '\n')
}
