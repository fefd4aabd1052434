//go:build !cgo

package cuda

import "errors"

func dlopen(string) (uintptr, error) {
	return 0, errors.New("this program was built without cgo and cannot open libcuda")
}
func dlsym(uintptr, string) uintptr                                         { return 0 }
func invoke(uintptr, uintptr, uintptr, *[maxArgs]uintptr, [2]float32) int32 { return 0 }
func forgetCurrent()                                                        {}
func flushStdout()                                                          {}
