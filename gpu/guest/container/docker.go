package container

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DockerConfig is the configuration of Docker's daemon.
const DockerConfig = "/etc/docker/daemon.json"

const (
	defaultRuntime = "default-runtime"
	runtimesKey    = "runtimes"
	basaltRuntime  = "basalt"
)

// registered lists the runtimes that are added to Docker's configuration, and the names of
// this program by which Docker starts them.
var registered = []struct{ name, program string }{
	{basaltRuntime, "basalt-container-runtime"},
	{"nvidia", "nvidia-container-runtime"}, // docker run --runtime nvidia, as many instructions have it
}

// member is a member of a JSON object.
type member struct {
	key   string
	value json.RawMessage
}

// members is a JSON object whose members keep the order that a person has chosen.
type members []member

// parseMembers decodes a JSON object. Text that is empty or white space has no members.
func parseMembers(text []byte) (m members, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	} else if t != json.Delim('{') {
		return nil, fmt.Errorf("it starts with %v, want an object", t)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("parse JSON: %w", err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("parse JSON: %w", err)
		}
		m = append(m, member{key.(string), value}) // Token fails if a key is not a string
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	if dec.More() {
		return nil, errors.New("unexpected text after the object")
	}
	return m, nil
}

func (m members) get(key string) json.RawMessage {
	for _, e := range m {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// with returns a copy of the members in which the key has the given value. If value is nil,
// the copy does not contain the key.
func (m members) with(key string, value json.RawMessage) members {
	var out members
	set := false
	for _, e := range m {
		if e.key == key {
			if value == nil || set {
				continue
			}
			e.value, set = value, true
		}
		out = append(out, e)
	}
	if value != nil && !set {
		out = append(out, member{key, value})
	}
	return out
}

// text returns the members as compact JSON.
func (m members) text() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(e.key) // strings always encode
		b.Write(key)
		b.WriteByte(':')
		b.Write(e.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// pathOf returns the program of a runtime in Docker's configuration, or "" if it has none.
func pathOf(runtime json.RawMessage) string {
	var r struct{ Path string }
	if json.Unmarshal(runtime, &r) != nil {
		return ""
	}
	return r.Path
}

// isOurs reports whether a runtime in Docker's configuration is this program, in any folder.
func isOurs(runtime json.RawMessage) bool {
	p := filepath.Base(pathOf(runtime))
	for _, r := range registered {
		if p == r.program {
			return true
		}
	}
	return false
}

// dockerOn returns Docker's configuration with our runtimes, whose programs are in the
// given folder. The notes name settings of the operator that prevent a change, and that are
// kept.
func dockerOn(text []byte, programs string) (_ []byte, notes []string, err error) {
	config, runtimes, err := parseDocker(text)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range registered {
		if old := runtimes.get(r.name); old != nil && !isOurs(old) {
			notes = append(notes, fmt.Sprintf("runtime %s is already %s and was not changed", r.name, pathOf(old)))
			continue
		}
		value, _ := json.Marshal(map[string]string{"path": filepath.Join(programs, r.program)}) // strings always encode
		runtimes = runtimes.with(r.name, value)
	}
	config = config.with(runtimesKey, runtimes.text())
	mine := isOurs(runtimes.get(basaltRuntime))
	switch name, err := defaultName(config); {
	case err != nil:
		return nil, nil, err
	case !mine:
	case name == "" || name == "runc":
		config = config.with(defaultRuntime, json.RawMessage(`"`+basaltRuntime+`"`))
	case !isOurs(runtimes.get(name)):
		notes = append(notes, fmt.Sprintf("%s is %q and was not changed: docker run --gpus all also needs --runtime %s", defaultRuntime, name, basaltRuntime))
	}
	out, err := indented(config)
	return out, notes, err
}

// dockerOff returns Docker's configuration without our runtimes, or nil if nothing else
// remains.
func dockerOff(text []byte) ([]byte, error) {
	config, runtimes, err := parseDocker(text)
	if err != nil {
		return nil, err
	}
	name, err := defaultName(config)
	if err != nil {
		return nil, err
	}
	if isOurs(runtimes.get(name)) {
		config = config.with(defaultRuntime, nil)
	}
	for _, r := range registered {
		if old := runtimes.get(r.name); old != nil && isOurs(old) {
			runtimes = runtimes.with(r.name, nil)
		}
	}
	if config.get(runtimesKey) != nil {
		value := runtimes.text()
		if len(runtimes) == 0 {
			value = nil
		}
		config = config.with(runtimesKey, value)
	}
	if len(config) == 0 {
		return nil, nil
	}
	return indented(config)
}

// parseDocker decodes Docker's configuration, and the runtimes in it.
func parseDocker(text []byte) (config, runtimes members, err error) {
	if config, err = parseMembers(text); err != nil {
		return nil, nil, fmt.Errorf("not a valid configuration of Docker: %w", err)
	}
	if runtimes, err = parseMembers(config.get(runtimesKey)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", runtimesKey, err)
	}
	return config, runtimes, nil
}

// defaultName returns the name of the default runtime, or "" if the configuration has none.
func defaultName(config members) (name string, err error) {
	raw := config.get(defaultRuntime)
	if raw == nil {
		return "", nil
	}
	if err := json.Unmarshal(raw, &name); err != nil {
		return "", fmt.Errorf("%s: %w", defaultRuntime, err)
	}
	return name, nil
}

// indented returns the configuration as JSON, indented by four spaces.
func indented(config members) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, config.text(), "", "    "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// Docker adds our runtimes to Docker's configuration file, or removes them if on is false.
// root is the root folder of the system that is configured, and programs the path in that
// system of the folder that contains this program under its names. The notes describe for
// the operator what was changed and what was not.
func Docker(root, file, programs string, on bool) (notes []string, err error) {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read Docker's configuration: %w", err)
	}
	if on {
		return registerDocker(root, file, old, programs)
	}
	if err != nil { // the file does not exist
		return []string{file + " does not exist: nothing to undo"}, nil
	}
	text, err := dockerOff(old)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	case text == nil:
		if err := os.Remove(file); err != nil {
			return nil, fmt.Errorf("remove Docker's configuration: %w", err)
		}
		return []string{file + " contained nothing else and was removed; restart Docker"}, nil
	case sameJSON(old, text):
		return []string{file + " contains no runtime of Basalt"}, nil
	}
	if err := replaceFile(file, text, modeOf(file, 0o644)); err != nil {
		return nil, fmt.Errorf("write Docker's configuration: %w", err)
	}
	return []string{file + " no longer contains the runtimes of Basalt; restart Docker"}, nil
}

// registerDocker adds our runtimes to a configuration file whose content is old.
func registerDocker(root, file string, old []byte, programs string) ([]string, error) {
	if flag := dockerFlag(root); flag != "" {
		return nil, fmt.Errorf("%s: Docker does not start where the same is in %s: register the runtime %s (%s) there by hand",
			flag, file, basaltRuntime, filepath.Join(programs, registered[0].program))
	}
	text, notes, err := dockerOn(old, programs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if sameJSON(old, text) {
		return append(notes, file+" already contains the runtimes of Basalt"), nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("write Docker's configuration: %w", err)
	}
	if err := replaceFile(file, text, modeOf(file, 0o644)); err != nil {
		return nil, fmt.Errorf("write Docker's configuration: %w", err)
	}
	return append(notes, file+" now contains the runtimes of Basalt; restart Docker if it is running"), nil
}

// dockerFiles lists the files that may contain the command line of Docker's daemon.
var dockerFiles = []string{"/etc/default/docker", "/etc/sysconfig/docker", "/etc/systemd/system/docker.service",
	"/etc/systemd/system/docker.service.d/*.conf", "/lib/systemd/system/docker.service", "/usr/lib/systemd/system/docker.service"}

// dockerFlag returns the first option of dockerd's command line that must not be in the
// configuration file too, with the file that contains it, or "" if there is none.
func dockerFlag(root string) string {
	for _, pattern := range dockerFiles {
		files, _ := filepath.Glob(filepath.Join(root, pattern)) // fails only for an invalid pattern
		for _, file := range files {
			text, _ := os.ReadFile(file) // a file that cannot be read counts as one without options
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(strings.TrimSpace(line), "#") {
					continue
				}
				for _, flag := range []string{"--default-runtime", "--add-runtime"} {
					if strings.Contains(line, flag) {
						return file + " has " + flag
					}
				}
			}
		}
	}
	return ""
}

// sameJSON reports whether two texts are valid JSON and differ in white space only.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// modeOf returns the permissions of a file, or the given mode if it does not exist.
func modeOf(file string, mode fs.FileMode) fs.FileMode {
	if st, err := os.Stat(file); err == nil {
		return st.Mode().Perm()
	}
	return mode
}
