// Package guestagent is a guest agent for images that bring none: it answers on the
// virtio-serial port the commands that Basalt gives, and those that libvirt asks by
// itself. What it speaks is QEMU's guest agent protocol (QEMU's documentation, "QEMU
// Guest Agent Protocol Reference"): a JSON object a line, each answered in turn.
//
// It runs as root in the guest and trusts its host, which can do anything to the guest
// anyhow; limits keep a host's mistake from taking the guest's memory.
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

// Version is what guest-info tells.
const Version = "1.0-basalt"

const (
	// maxLine of a command: a program's input of 1 MiB in base64, and its arguments.
	maxLine = 4 << 20
	// delimiter precedes the answer to guest-sync-delimited: whoever asks throws away what
	// came before it. It may also precede a command, to end one that was cut off.
	delimiter = 0xff
)

// Agent answers commands. One goroutine serves it.
type Agent struct {
	programs programs
	files    frozen
	start    func(*exec.Cmd) error
	// power changes the machine's state: "powerdown", "halt" or "reboot".
	power func(mode string) error
}

// New makes an agent for this machine.
func New() *Agent {
	return &Agent{programs: programs{all: map[int64]*program{}}, files: frozen{system: kernel{}}, start: (*exec.Cmd).Start, power: power}
}

// fault is an error as the protocol tells it.
type fault struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

func generic(format string, args ...any) *fault {
	return &fault{"GenericError", fmt.Sprintf(format, args...)}
}

type request struct {
	Execute   string          `json:"execute"`
	Arguments json.RawMessage `json:"arguments"`
	ID        json.RawMessage `json:"id"`
}

// Serve answers what comes until there is no more, or the answers cannot be written.
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

// readLine reads a command. Of one that is too long the rest is read and thrown away.
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
			return []byte("{"), errLong // it is answered as what cannot be read
		}
		if i := bytes.LastIndexByte(line, delimiter); i >= 0 {
			line = line[i+1:]
		}
		return line, nil
	}
}

// answer one command; nil where there is no answer.
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
	result, err := c.do(a, q.Arguments)
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

// encode an answer. What a JSON decoder gave can be encoded again, and the rest is ours.
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
