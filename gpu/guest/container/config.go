package container

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// hookName is the program that Docker requires in its PATH for --gpus, and that it adds to
// every such container as a prestart hook.
const hookName = "nvidia-container-runtime-hook"

// maxConfig bounds a container's config.json, in bytes.
const maxConfig = 16 << 20

// object is a JSON object. Values that this package does not change are kept byte by byte.
type object map[string]json.RawMessage

// get decodes the value of a key into the variable that into points to. If the key is
// absent, it changes nothing.
func (o object) get(key string, into any) error {
	if len(o[key]) == 0 {
		return nil
	}
	if err := json.Unmarshal(o[key], into); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (o object) set(key string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	o[key] = b
	return nil
}

// updateObject applies change to the object that is the value of a key. If the key is
// absent or null, it starts with an empty object.
func (o object) updateObject(key string, change func(object) error) error {
	inner := object{}
	if err := o.get(key, &inner); err != nil {
		return err
	}
	if inner == nil { // null
		inner = object{}
	}
	if err := change(inner); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return o.set(key, inner)
}

// Configure returns an OCI config.json with the GPUs that its container requests: by
// Docker's hook (--gpus) or, if believeImages is set, by its environment alone. The hook is
// removed. changed is false if the container requests nothing; the result is then config
// itself. It returns an error if config is not valid, is larger than maxConfig, or requests
// a GPU that does not exist.
func (m *Machine) Configure(config []byte, believeImages bool) (_ []byte, changed bool, err error) {
	var c object
	if len(config) > maxConfig {
		return nil, false, fmt.Errorf("config.json has %d bytes, want at most %d", len(config), maxConfig)
	}
	if err := json.Unmarshal(config, &c); err != nil || c == nil {
		return nil, false, fmt.Errorf("config.json is not a JSON object: %w", err)
	}
	hooked, err := removeHook(c)
	if err != nil {
		return nil, false, fmt.Errorf("config.json: %w", err)
	}
	if !hooked && !believeImages {
		return config, false, nil
	}
	var process struct{ Env []string }
	if err := c.get("process", &process); err != nil {
		return nil, false, fmt.Errorf("config.json: %w", err)
	}
	r, err := parseRequest(environment(process.Env), m.GPUs())
	if err != nil {
		return nil, false, err
	}
	if r.libraries {
		if err := m.applyEdits(c, r); err != nil {
			return nil, false, err
		}
	} else if !hooked {
		return config, false, nil
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil, false, fmt.Errorf("config.json: %w", err)
	}
	return b, true, nil
}

// removeHook removes Docker's hook, and reports whether there was one.
func removeHook(c object) (found bool, err error) {
	var hooks object
	if err := c.get("hooks", &hooks); err != nil || len(hooks["prestart"]) == 0 {
		return false, err
	}
	var list []json.RawMessage
	if err := hooks.get("prestart", &list); err != nil {
		return false, err
	}
	kept := slices.DeleteFunc(list, func(raw json.RawMessage) bool {
		var h oci.Hook
		return json.Unmarshal(raw, &h) == nil && filepath.Base(h.Path) == hookName
	})
	if len(kept) == len(list) {
		return false, nil
	}
	if len(kept) == 0 {
		delete(hooks, "prestart")
	} else if err := hooks.set("prestart", kept); err != nil {
		return false, err
	}
	return true, c.set("hooks", hooks)
}

// applyEdits applies the specification's edits for the request to c. CDI's library applies
// them to an empty configuration, which is then merged, so that fields of c that the library
// does not support are kept.
func (m *Machine) applyEdits(c object, r request) error {
	s, err := m.Spec()
	if err != nil {
		return err
	}
	edits := &cdi.ContainerEdits{ContainerEdits: &s.ContainerEdits}
	for _, name := range r.devices {
		i := slices.IndexFunc(s.Devices, func(d specs.Device) bool { return d.Name == name })
		if i < 0 {
			return m.noGPU()
		}
		edits.Append(&cdi.ContainerEdits{ContainerEdits: &s.Devices[i].ContainerEdits})
	}
	var added oci.Spec
	if err := edits.Apply(&added); err != nil {
		return fmt.Errorf("CDI edits: %w", err)
	}
	if err := merge(c, &added); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	return nil
}

// merge adds environment variables, mounts, devices and device rules to a configuration.
// Variables, mounts and devices replace those of the same name, destination and path.
func merge(c object, added *oci.Spec) error {
	if err := c.updateObject("process", func(p object) error {
		names := environment(added.Process.Env)
		return replace(p, "env", added.Process.Env, func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			_, again := names[name]
			return again
		})
	}); err != nil {
		return err
	}
	destinations := map[string]bool{}
	for _, mount := range added.Mounts {
		destinations[mount.Destination] = true
	}
	if err := replace(c, "mounts", added.Mounts, func(v struct{ Destination string }) bool { return destinations[v.Destination] }); err != nil {
		return err
	}
	if added.Linux == nil { // the request is for the libraries alone
		return nil
	}
	paths := map[string]bool{}
	for _, d := range added.Linux.Devices {
		paths[d.Path] = true
	}
	return c.updateObject("linux", func(l object) error {
		if err := replace(l, "devices", added.Linux.Devices, func(v struct{ Path string }) bool { return paths[v.Path] }); err != nil {
			return err
		}
		return l.updateObject("resources", func(r object) error {
			// The rules are evaluated in order, and the last one that matches decides.
			return replace(r, "devices", added.Linux.Resources.Devices, func(struct{}) bool { return false })
		})
	})
}

// replace removes the elements of a list for which replaced returns true, and appends added.
// The other elements are kept byte by byte.
func replace[V, E any](o object, key string, added []V, replaced func(E) bool) error {
	var list []json.RawMessage
	if err := o.get(key, &list); err != nil {
		return err
	}
	kept := make([]any, 0, len(list)+len(added))
	for _, raw := range list {
		var e E
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if !replaced(e) {
			kept = append(kept, raw)
		}
	}
	for _, v := range added {
		kept = append(kept, v)
	}
	return o.set(key, kept)
}
