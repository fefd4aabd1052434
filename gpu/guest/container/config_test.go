package container

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// config is a config.json as Docker writes it, with unknown fields in many places.
const config = `{"ociVersion":"9.9","future":{"big":12345678901234567890},
"process":{"env":["PATH=/bin","NVIDIA_VISIBLE_DEVICES=none","NVIDIA_VISIBLE_DEVICES=all"ENV],"later":1.50},
"hooks":{"prestart":[{"path":"/proc/1/exe","args":["libnetwork-setkey"]},{"path":"/usr/bin/nvidia-container-runtime-hook","args":["nvidia-container-runtime-hook","prestart"]}],"poststop":[{"path":"/bin/true"}]},
"mounts":[{"destination":"/proc","type":"proc","source":"proc","new":[1]},{"destination":"/usr/bin/nvidia-smi","source":"/old"}],
"linux":{"seccomp":{"x":1e3},"devices":[{"path":"/dev/full","type":"c","major":1,"minor":7,"x":1}],"resources":{"memory":{"limit":9007199254740993},"devices":[{"allow":false,"access":"rwm"}]}}}`

func withEnv(extra string) []byte { return []byte(strings.Replace(config, "ENV", extra, 1)) }

// Configure replaces what Docker's --gpus adds by the CDI edits, and changes nothing else.
func TestConfigure(t *testing.T) {
	m, dir := fake(t, "/dev/null", "/dev/zero")
	// The configuration already has one of the devices, because of --privileged.
	text := strings.Replace(string(withEnv("")), `"devices":[`, `"devices":[{"path":"/dev/null","type":"c","major":7,"minor":7},`, 1)
	out, changed, err := m.Configure([]byte(text), false)
	if err != nil || !changed {
		t.Fatalf("Configure: changed %v, error %v, want a change", changed, err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, out, "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "config.json", strings.ReplaceAll(b.String(), dir, "DIR"))
	if again, changed, err := m.Configure(out, true); err != nil || changed || !bytes.Equal(again, out) {
		t.Errorf("Configure of its own output: changed %v, error %v, want the same text\n%s", changed, err, again)
	}
}

// The configuration of a container that requests nothing is returned unchanged, byte by
// byte.
func TestConfigureNothing(t *testing.T) {
	m, _ := fake(t)
	plain := strings.Replace(string(withEnv("")), "nvidia-container-runtime-hook", "other", 2)
	if out, changed, err := m.Configure([]byte(plain), false); err != nil || changed || string(out) != plain {
		t.Errorf("Configure without the hook: changed %v, error %v, want no change\n%s", changed, err, out)
	}
	for _, env := range []string{`,"NVIDIA_VISIBLE_DEVICES=void"`, `,"NVIDIA_VISIBLE_DEVICES="`} {
		text := strings.Replace(plain, `ENV`, "", 1)
		text = strings.Replace(text, `"NVIDIA_VISIBLE_DEVICES=all"`, `"NVIDIA_VISIBLE_DEVICES=all"`+env, 1)
		if out, changed, err := m.Configure([]byte(text), true); err != nil || changed || string(out) != text {
			t.Errorf("Configure with %s: changed %v, error %v, want no change\n%s", env, changed, err, out)
		}
		// With --gpus 0 only the hook is removed.
		out, changed, err := m.Configure(withEnv(env), false)
		if err != nil || !changed || bytes.Contains(out, []byte(hookName)) || bytes.Contains(out, []byte("libcuda")) || !bytes.Contains(out, []byte("libnetwork-setkey")) {
			t.Errorf("Configure with %s and the hook: changed %v, error %v, want only the hook removed\n%s", env, changed, err, out)
		}
	}
}

func TestConfigureRequests(t *testing.T) {
	for _, c := range []struct {
		gpus            int
		env             string
		devices, refuse string
	}{
		{2, `,"NVIDIA_VISIBLE_DEVICES=0"`, "/dev/null", ""},
		{2, `,"NVIDIA_VISIBLE_DEVICES=1"`, "/dev/zero", ""},
		{2, `,"NVIDIA_VISIBLE_DEVICES=0,1"`, "/dev/null /dev/zero", ""},
		{2, `,"NVIDIA_VISIBLE_DEVICES=1,1"`, "/dev/zero", ""},
		{2, `,"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=1"`, "/dev/zero", ""},
		{2, `,"NVIDIA_VISIBLE_DEVICES=none"`, "", ""},
		{0, `,"NVIDIA_VISIBLE_DEVICES=none"`, "", ""},
		{1, `,"NVIDIA_DRIVER_CAPABILITIES=compute,utility,video"`, "/dev/null", ""},
		{1, `,"NVIDIA_VISIBLE_DEVICES=0,1"`, "", `requests GPU "1" (NVIDIA_VISIBLE_DEVICES=0,1), but this machine has one GPU: 0, or all`},
		{2, `,"NVIDIA_VISIBLE_DEVICES=2"`, "", "this machine has 2 GPUs: 0 to 1, or all"},
		{2, `,"NVIDIA_VISIBLE_DEVICES=-1"`, "", `GPU "-1"`},
		{2, `,"NVIDIA_VISIBLE_DEVICES=GPU-fef8089b"`, "", `GPU "GPU-fef8089b"`},
		{2, `,"NVIDIA_VISIBLE_DEVICES=0,"`, "", `GPU ""`},
		{0, ``, "", "this machine has no vGPU: /dev/dri has no render nodes"},
		{0, `,"NVIDIA_VISIBLE_DEVICES=0"`, "", "this machine has none"},
		{1, `,"NVIDIA_DRIVER_CAPABILITIES=compute,fast"`, "", `NVIDIA_DRIVER_CAPABILITIES has "fast"`},
	} {
		m, _ := fake(t, []string{"/dev/null", "/dev/zero"}[:c.gpus]...)
		out, _, err := m.Configure(withEnv(c.env), false)
		if c.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%d GPUs, %s: error %v, want %q", c.gpus, c.env, err, c.refuse)
			}
			continue
		}
		var got struct {
			Process struct{ Env []string }
			Mounts  []struct{ Destination string }
			Linux   struct {
				Devices   []struct{ Path string }
				Resources struct{ Devices []struct{ Allow bool } }
			}
		}
		if err != nil || json.Unmarshal(out, &got) != nil {
			t.Errorf("%d GPUs, %s: error %v, want valid JSON; got\n%s", c.gpus, c.env, err, out)
			continue
		}
		var paths []string
		for _, d := range got.Linux.Devices[1:] { // the first one is the container's own
			paths = append(paths, d.Path)
		}
		env := strings.Join(got.Process.Env, " ")
		if strings.Join(paths, " ") != c.devices || len(got.Mounts) != 15 || strings.Count(env, visibleDevices) != 1 || !strings.Contains(env, visibleDevices+"=void") {
			t.Errorf("%s: devices %q, %d mounts, environment %q; want devices %q, 15 mounts and one %s=void", c.env, paths, len(got.Mounts), got.Process.Env, c.devices, visibleDevices)
		}
	}
}

func TestConfigureBad(t *testing.T) {
	m, _ := fake(t, "/dev/null")
	hook := `"hooks":{"prestart":[{"path":"/nvidia-container-runtime-hook"}]}`
	for text, want := range map[string]string{
		``:                                     "not a JSON object",
		`null`:                                 "not a JSON object",
		`[]`:                                   "not a JSON object",
		`{"hooks":7}`:                          "hooks: ",
		`{"hooks":{"prestart":{}}}`:            "prestart: ",
		`{` + hook + `,"process":{"env":"x"}}`: "process: ",
		`{` + hook + `,"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},"mounts":{}}`:                       "mounts: ",
		`{` + hook + `,"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},"mounts":[1]}`:                      "mounts: ",
		`{` + hook + `,"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},"linux":[]}`:                        "linux: ",
		`{` + hook + `,"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},"linux":{"resources":true}}`:        "linux: resources: ",
		`{` + hook + `,"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},"linux":{"devices":[{"path":[]}]}}`: "linux: devices: ",
	} {
		if _, _, err := m.Configure([]byte(text), false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Configure of %s: error %v, want %q", text, err, want)
		}
	}
	if _, _, err := m.Configure(make([]byte, maxConfig+1), false); err == nil {
		t.Errorf("Configure of %d bytes succeeded, want an error: the maximum is %d", maxConfig+1, maxConfig)
	}
	// Objects that are missing or null are created.
	out, _, err := m.Configure([]byte(`{`+hook+`,"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},"linux":null}`), false)
	if err != nil || !bytes.Contains(out, []byte(`"access":"rw"`)) {
		t.Errorf("Configure with linux null: error %v, want a device rule with access rw in\n%s", err, out)
	}
}

func FuzzConfigure(f *testing.F) {
	f.Add(withEnv(""))
	f.Add([]byte(`{"hooks":{"prestart":[null,{"path":"nvidia-container-runtime-hook"}]},"linux":null,"mounts":null}`))
	m := &Machine{Libraries: "/", Programs: "/", Nodes: []string{"/dev/null"}}
	f.Fuzz(func(t *testing.T, text []byte) {
		out, changed, err := m.Configure(text, true)
		if err == nil && changed && !json.Valid(out) {
			t.Errorf("Configure returned %q, want valid JSON", out)
		}
	})
}
