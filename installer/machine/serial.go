package machine

import (
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxSerialPorts limits the reported ports of a computer, since the kernel writes to
// each.
const maxSerialPorts = 4

var serialPort = regexp.MustCompile(`^ttyS([0-9]{1,2})$`)

// SerialPorts returns the serial ports that the computer really has, in order: the
// kernel creates devices for some that do not exist, whose type is 0
// (include/uapi/linux/serial.h, PORT_UNKNOWN).
func SerialPorts(root fs.FS) (ports []string) {
	const dir = "sys/class/tty"
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !serialPort.MatchString(e.Name()) {
			continue
		}
		raw, err := fs.ReadFile(root, dir+"/"+e.Name()+"/type")
		if kind, bad := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && bad == nil && kind != 0 {
			ports = append(ports, e.Name())
		}
	}
	number := func(port string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(port, "ttyS")) // only digits
		return n
	}
	slices.SortFunc(ports, func(a, b string) int { return number(a) - number(b) })
	return ports[:min(len(ports), maxSerialPorts)]
}
