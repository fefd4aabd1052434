package machine

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestSerialPorts(t *testing.T) {
	for name, c := range map[string]struct {
		types map[string]string
		want  []string
	}{
		"none":                     {nil, nil},
		"one of the kernel's four": {map[string]string{"ttyS0": "4", "ttyS1": "0", "ttyS2": "0", "ttyS3": "0"}, []string{"ttyS0"}},
		"a board's second":         {map[string]string{"ttyS0": "0", "ttyS1": "4"}, []string{"ttyS1"}},
		"in their order":           {map[string]string{"ttyS10": "4", "ttyS2": "4", "ttyS0": "4"}, []string{"ttyS0", "ttyS2", "ttyS10"}},
		"too many":                 {map[string]string{"ttyS0": "4", "ttyS1": "4", "ttyS2": "4", "ttyS3": "4", "ttyS4": "4"}, []string{"ttyS0", "ttyS1", "ttyS2", "ttyS3"}},
		"other names and garbage":  {map[string]string{"ttyUSB0": "4", "tty1": "4", "ttyS": "4", "ttyS0": "x", "ttyS1": "", "ttyS1 console=x": "4"}, nil},
	} {
		root := fstest.MapFS{}
		for port, kind := range c.types {
			root["sys/class/tty/"+port+"/type"] = &fstest.MapFile{Data: []byte(kind + "\n")}
		}
		if got := SerialPorts(root); !slices.Equal(got, c.want) {
			t.Errorf("%s: serial ports = %q, want %q", name, got, c.want)
		}
	}
}
