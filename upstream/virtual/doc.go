// Package virtual runs the real, unmodified HorizontalPodAutoscaler controller of a Kubernetes
// release in virtual time, and lets another program step it over stdin and stdout.
//
// Upstream's own code are: the controller, its metrics client, the informers and listers, the event
// broadcaster, and what the API server does to an HPA (decoding, defaulting, validation, strategy).
// Ours are the transport (docs/protocol.md) and what stands in for the cluster: a table of objects
// with watches, a table of scales and tables of what the metrics APIs answer.
//
// A scenario is one testing/synctest bubble. Within it time passes only while every goroutine waits
// for time or for another goroutine of the bubble. The next request is awaited on a channel from
// outside of the bubble, which is neither: so the clock stands still until it comes.
//
// synctest needs a *testing.T, hence the host is a test binary:
//
//	go test -c -vet=off -mod=readonly -modfile=versions/v1.37.mod \
//	  -tags k1.6,k1.7,…,k1.37 -ldflags='-s -w' -o engine ./virtual
//
// and runs without arguments. The tags are cumulative, in the manner of Go's own release tags; what
// differs between releases is in files named for the oldest release they hold for.
package virtual
