package guestagent

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// command of the protocol.
type command struct {
	do          func(a *Agent, args json.RawMessage) (any, *fault)
	whileFrozen bool // it writes to no file system
	silent      bool // it has no answer when it goes well
}

type none struct{}

var commands map[string]command

func init() { // guest-info lists them
	commands = map[string]command{
		"guest-ping":            {do: func(*Agent, json.RawMessage) (any, *fault) { return none{}, nil }, whileFrozen: true},
		"guest-sync":            {do: synchronize, whileFrozen: true},
		"guest-sync-delimited":  {do: synchronize, whileFrozen: true},
		"guest-info":            {do: info, whileFrozen: true},
		"guest-exec":            {do: (*Agent).exec},
		"guest-exec-status":     {do: (*Agent).execStatus},
		"guest-fsfreeze-status": {do: func(a *Agent, _ json.RawMessage) (any, *fault) { return a.files.status(), nil }, whileFrozen: true},
		"guest-fsfreeze-freeze": {do: func(a *Agent, _ json.RawMessage) (any, *fault) { return a.files.freeze() }},
		"guest-fsfreeze-thaw":   {do: func(a *Agent, _ json.RawMessage) (any, *fault) { return a.files.thaw(), nil }, whileFrozen: true},
		"guest-shutdown":        {do: (*Agent).shutdown, silent: true},
	}
}

// arguments reads a command's arguments, and knows all of them.
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

// synchronize gives back the number that it was given: whoever asked knows then that what comes
// is the answer to this, and not to what somebody asked before.
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
