package gpud

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// maxBody is the largest request body, in bytes.
const maxBody = 64 << 10

// handler returns the handler of the control API and the worker stream.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	control := func(pattern string, h http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if p, ok := r.Context().Value(peerKey{}).(peer); !ok || !p.mayControl() {
				writeError(w, http.StatusForbidden, &wire.Error{Code: wire.CodeForbidden, Message: "only gpud's own user and root may control it, and no process without new privileges (no_new_privs): that is how workers run"})
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			h(w, r)
		})
	}
	control("GET /v1/healthz", s.getHealth)
	control("GET /v1/gpus", s.getGPUs)
	control("GET /v1/unusable-gpus", s.getUnusable)
	control("PUT /v1/gpus/{id}", s.putGPU)
	control("GET /v1/vgpus", s.getVGPUs)
	control("GET /v1/now", s.getNow)
	control("PUT /v1/vgpus/{id}", s.putVGPU)
	control("DELETE /v1/vgpus/{id}", s.deleteVGPU)
	mux.HandleFunc("POST /v1/worker", s.serveWorker)
	return mux
}

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) {
	var h wire.Health
	if !s.core.call(func() { h = s.core.health() }) {
		stopping(w)
		return
	}
	status := http.StatusOK
	if !h.OK {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, h)
}

func (s *Server) getGPUs(w http.ResponseWriter, _ *http.Request) {
	var all []wire.GPU
	if !s.core.call(func() { all = s.core.gpus(now()) }) {
		stopping(w)
		return
	}
	writeJSON(w, http.StatusOK, all)
}

// getUnusable lists the machine's NVIDIA cards that cannot be used, with the
// reasons.
func (s *Server) getUnusable(w http.ResponseWriter, _ *http.Request) {
	all := []wire.UnusableGPU{}
	if found := s.unusable.Load(); found != nil {
		all = append(all, *found...)
	}
	writeJSON(w, http.StatusOK, all)
}

// putGPU changes the settings that the operator chooses for a card.
func (s *Server) putGPU(w http.ResponseWriter, r *http.Request) {
	var spec wire.GPUSpec
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&spec); err != nil {
		writeError(w, http.StatusBadRequest, &wire.Error{Code: wire.CodeInvalid, Message: "body: " + err.Error()})
		return
	}
	var refused *wire.Error
	if !s.core.call(func() { refused = s.core.setCard(sched.GPUID(r.PathValue("id")), spec) }) {
		stopping(w)
		return
	}
	if refused != nil {
		writeError(w, statusOf[refused.Code], refused)
		return
	}
	writeJSON(w, http.StatusOK, spec)
}

func (s *Server) getNow(w http.ResponseWriter, _ *http.Request) {
	var all wire.Now
	if !s.core.call(func() { all = s.core.present(now()) }) {
		stopping(w)
		return
	}
	writeJSON(w, http.StatusOK, all)
}

// getVGPUs lists the vGPUs; with ?deleted=true also deleted ones whose last usage
// is still stored.
func (s *Server) getVGPUs(w http.ResponseWriter, r *http.Request) {
	answer := make(chan []wire.VGPU, 1)
	s.core.call(func() {
		s.core.list("", r.URL.Query().Get("deleted") == "true", func(all []wire.VGPU) { answer <- all })
	})
	select {
	case all := <-answer:
		writeJSON(w, http.StatusOK, all)
	case <-s.core.stopped:
		stopping(w)
	}
}

func (s *Server) putVGPU(w http.ResponseWriter, r *http.Request) {
	var spec wire.VGPUSpec
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&spec); err != nil {
		writeError(w, http.StatusBadRequest, &wire.Error{Code: wire.CodeInvalid, Message: "body: " + err.Error()})
		return
	}
	id := sched.VGPUID(r.PathValue("id"))
	s.change(w, id, true, func() *wire.Error { return s.core.put(id, spec, now()) })
}

func (s *Server) deleteVGPU(w http.ResponseWriter, r *http.Request) {
	id := sched.VGPUID(r.PathValue("id"))
	s.change(w, id, false, func() *wire.Error { return s.core.remove(id, now()) })
}

// change applies f to a vGPU and answers with the vGPU once it is on disk; the
// answer has the token if token is set.
func (s *Server) change(w http.ResponseWriter, id sched.VGPUID, token bool, f func() *wire.Error) {
	type result struct {
		vgpu wire.VGPU
		err  error
	}
	answer := make(chan result, 1)
	s.core.call(func() {
		if e := f(); e != nil {
			answer <- result{err: e}
			return
		}
		s.core.durable(func(err error) {
			if err != nil {
				answer <- result{err: &wire.Error{Code: wire.CodeUnavailable, Message: "write change: " + err.Error()}}
			} else if v := s.core.vgpus[id]; v != nil {
				out := v.answer(now())
				if token {
					out.Token = v.token
				}
				answer <- result{vgpu: out}
			} else {
				answer <- result{err: &wire.Error{Code: wire.CodeNotFound, Message: "the vGPU was removed"}}
			}
		})
	})
	select {
	case got := <-answer:
		var e *wire.Error
		if errors.As(got.err, &e) {
			writeError(w, statusOf[e.Code], e)
			return
		}
		writeJSON(w, http.StatusOK, got.vgpu)
	case <-s.core.stopped:
		stopping(w)
	}
}

var statusOf = map[string]int{
	wire.CodeInvalid: http.StatusBadRequest, wire.CodeNotFound: http.StatusNotFound, wire.CodeNoFit: http.StatusConflict,
	wire.CodeBusy: http.StatusConflict, wire.CodeUnavailable: http.StatusServiceUnavailable,
}

func stopping(w http.ResponseWriter) {
	writeError(w, http.StatusServiceUnavailable, &wire.Error{Code: wire.CodeUnavailable, Message: "gpud is stopping"})
}

func writeError(w http.ResponseWriter, status int, e *wire.Error) { writeJSON(w, status, e) }

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has disconnected: there is nothing to do
}
