package guestagent

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// command is a command of the protocol.
type command struct {
	run         func(a *Agent, args json.RawMessage) (any, *fault)
	whileFrozen bool // allowed while file systems are frozen: it does not write to them
	silent      bool // it has no answer if it succeeds
}

// none is the result of a command that returns nothing.
type none struct{}

var commands map[string]command

func init() { // not an initializer, because guest-info refers to the map
	commands = map[string]command{
		"guest-ping":            {run: func(*Agent, json.RawMessage) (any, *fault) { return none{}, nil }, whileFrozen: true},
		"guest-sync":            {run: synchronize, whileFrozen: true},
		"guest-sync-delimited":  {run: synchronize, whileFrozen: true},
		"guest-info":            {run: info, whileFrozen: true},
		"guest-exec":            {run: (*Agent).exec},
		"guest-exec-status":     {run: (*Agent).execStatus},
		"guest-fsfreeze-status": {run: func(a *Agent, _ json.RawMessage) (any, *fault) { return a.files.status(), nil }, whileFrozen: true},
		"guest-fsfreeze-freeze": {run: func(a *Agent, _ json.RawMessage) (any, *fault) { return a.files.freeze() }},
		"guest-fsfreeze-thaw":   {run: func(a *Agent, _ json.RawMessage) (any, *fault) { return a.files.thaw(), nil }, whileFrozen: true},
		"guest-shutdown":        {run: (*Agent).shutdown, silent: true},
	}
}

// arguments decodes a command's arguments. Unknown arguments are an error.
func arguments(args json.RawMessage, into any) *fault {
	if len(args) == 0 {
		args = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return generic("decode arguments: %v", err)
	}
	return nil
}

// synchronize returns the number in its arguments. The client knows by it that the answer is
// to this command, and not to an earlier one.
func synchronize(_ *Agent, args json.RawMessage) (any, *fault) {
	var q struct {
		ID *int64 `json:"id"`
	}
	if err := arguments(args, &q); err != nil {
		return nil, err
	}
	if q.ID == nil {
		return nil, generic("the argument id is missing")
	}
	return *q.ID, nil
}

// info returns the agent's version and its commands.
func info(*Agent, json.RawMessage) (any, *fault) {
	type entry struct {
		Name    string `json:"name"`
		Enabled bool   `json:"enabled"`
		Success bool   `json:"success-response"`
	}
	var list []entry
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		list = append(list, entry{name, true, !commands[name].silent})
	}
	return struct {
		Version  string  `json:"version"`
		Commands []entry `json:"supported_commands"`
	}{Version, list}, nil
}

// shutdown powers the machine down, halts or reboots it.
func (a *Agent) shutdown(args json.RawMessage) (any, *fault) {
	q := struct {
		Mode string `json:"mode"`
	}{"powerdown"}
	if err := arguments(args, &q); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"powerdown", "halt", "reboot"}, q.Mode) {
		return nil, generic("mode is %.20q, want powerdown, halt or reboot", q.Mode)
	}
	if err := a.power(q.Mode); err != nil {
		return nil, generic("%s: %v", q.Mode, err)
	}
	return none{}, nil
}
