package answers

import (
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/basalt-gpu/basalt/appliance/strictyaml"
)

// GPUDriver is the request to install NVIDIA's driver when the node starts for the first
// time, whose license the operator has accepted.
type GPUDriver struct {
	From *Place // directory with the packages; nil: Debian's archive
}

// Place is a file or directory on a medium.
type Place struct {
	// Device is the medium's device file. If it is empty, Path is a path of this system.
	Device string
	Path   string // without a leading slash; ".": the whole medium
}

func (p Place) String() string {
	if p.Device == "" {
		return p.Path
	}
	return p.Device + ":/" + strings.TrimPrefix(p.Path, ".")
}

var (
	labelForm  = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,32}$`)
	deviceForm = regexp.MustCompile(`^/dev/[A-Za-z0-9_./:-]{1,128}$`)
)

const packagesForm = "write LABEL:/DIRECTORY or /dev/sdb1:/DIRECTORY, the place of the packages on a medium"

// ParsePlace parses LABEL:/path, a path on the medium with that label, and /dev/sdb1:/path.
func ParsePlace(s string) (Place, error) {
	// The last colon separates the path, since names under /dev may contain colons.
	i := strings.LastIndex(s, ":")
	if i < 0 {
		return Place{}, bad(packagesForm, "%q names no file or directory", strictyaml.Clip(s))
	}
	device, p := s[:i], Place{Path: path.Clean("/" + s[i+1:])[1:]}
	if p.Path == "" {
		p.Path = "."
	}
	switch {
	case deviceForm.MatchString(device) && path.Clean(device) == device:
		p.Device = device
	case labelForm.MatchString(device):
		p.Device = "/dev/disk/by-label/" + device
	default:
		return Place{}, bad(packagesForm, "%q names no medium", strictyaml.Clip(s))
	}
	return p, nil
}

// gpuDriver reads the request. The license must be accepted in words: the driver is not
// installed because of a field that somebody has copied without reading it.
func (r *reader) gpuDriver(n *yaml.Node, at string, a *Answers) {
	const instead = "write acceptNVIDIALicense: true after you have read it (docs/gpu-nodes.md), or remove gpuDriver"
	accepted := false
	ok := r.Mapping(n, at,
		strictyaml.Field{Name: "acceptNVIDIALicense", Required: "acceptNVIDIALicense: true", Read: func(n *yaml.Node, at string) {
			before := len(r.Mistakes())
			if accepted = r.Flag(n, at); !accepted && len(r.Mistakes()) == before {
				r.Wrong(n, at, instead, "without NVIDIA's license the driver cannot be installed")
			}
		}},
		strictyaml.Field{Name: "packages", Read: func(n *yaml.Node, at string) {
			s, ok := r.Text(n, at, packagesForm)
			if !ok {
				return
			}
			place, err := ParsePlace(s)
			r.because(n, at, err)
			if a.GPUDriver == nil {
				a.GPUDriver = &GPUDriver{}
			}
			a.GPUDriver.From = &place
		}},
	)
	switch {
	case !ok || !accepted:
		a.GPUDriver = nil
	case a.GPUDriver == nil:
		a.GPUDriver = &GPUDriver{}
	}
}
