package servertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// Packages is server.Packages in memory.
type Packages struct {
	mu   sync.Mutex
	sums map[string]int64 // sizes, by sum
}

// Put implements server.Packages.
func (p *Packages) Put(_ context.Context, sum string, content io.Reader, size int64) error {
	hash := sha256.New()
	n, err := io.Copy(hash, content)
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum || size >= 0 && n != size {
		return api.Errorf(api.CodeInvalid, "what came has the sum %s, want %s", got, sum)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sums == nil {
		p.sums = map[string]int64{}
	}
	p.sums[sum] = n
	return nil
}

// Size returns the size of a package; 0 if it was not uploaded.
func (p *Packages) Size(sum string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sums[sum]
}
