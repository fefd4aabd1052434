package main

import (
	"bytes"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

func callStub(b *bytes.Buffer, f *cudaapi.Function) {}
