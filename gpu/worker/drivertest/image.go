package drivertest

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// testImageInfo checks that an image's kernels can be listed without a context,
// and are those of the module.
func testImageInfo(x *tester) {
	read, err := x.driver.ImageInfo([]byte(Kernels))
	x.check(err)
	_, _, loaded, err := x.context().ModuleLoad([]byte(Kernels), worker.ModuleOptions{})
	x.check(err)
	if names, want := namesOf(read), namesOf(loaded); names != want {
		x.Errorf("kernels of the image = %q, want those of its module, %q", names, want)
	}
	for i, f := range read.Functions {
		if len(f.Params) != len(loaded.Functions[i].Params) {
			x.Errorf("%s has %d parameters in the image, want the %d of the module", f.Name, len(f.Params), len(loaded.Functions[i].Params))
		}
	}
	if _, err := x.driver.ImageInfo([]byte{0x50, 0xed, 0x55, 0xba, 1}); err == nil {
		x.Error("ImageInfo of a truncated fatbin returned no error")
	}
}

func namesOf(info abi.ModuleInfo) string {
	var names []string
	for _, f := range info.Functions {
		names = append(names, f.Name)
	}
	return strings.Join(names, " ")
}
