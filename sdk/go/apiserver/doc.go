// Package apiserver is a Kubernetes API server in memory. Clients call it through a *rest.Config
// without a network, so that controllers with their real clients run in a testing/synctest bubble.
//
// The server has no goroutine of its own, except one for each watch. Every request is answered at
// the instant at which it was sent, and reported in order to [Server.After].
//
// What is served:
//
//	discovery        /version, /api, /apis: legacy and aggregated documents
//	reads            get; list with label and field selectors, limit and continue
//	watches          from a resource version, from the current state, and as a stream of a list
//	                 (sendInitialEvents) that ends with a bookmark; selectors; 410 after too many
//	                 changes
//	writes           create, update, delete, deletecollection; dryRun=All; conflicts by resource
//	                 version; preconditions of deletions; generateName; generations
//	patches          JSON, merge, strategic merge (built-in kinds), server-side apply with managed
//	                 fields, conflicts and force
//	subresources     status, scale
//	deletion         finalizers; dependents of deleted owners, by the policies Background,
//	                 Foreground and Orphan, at the instant of the deletion
//	built-in kinds   see [Builtin]; fields and types are checked by client-go's Go types, and
//	                 defaults are set for the HorizontalPodAutoscaler only
//	events           of the core group and of events.k8s.io, which are the same objects
//	custom resources from CustomResourceDefinitions, by [Server.ServeCRD] or by a client: pruning,
//	                 defaults, validation by schema and by CEL, several versions with the
//	                 conversion strategy None
//	other APIs       see [Server.ServeAPI]: aggregated APIs that are answered by a function
//	formats          JSON; protobuf and YAML in requests
//
// What is not served is answered with an error that names it: other kinds and subresources, conversion
// webhooks, admission webhooks, protobuf-only and Table answers, OpenAPI documents. No controller
// runs beside the one that is tested: nothing creates the pods of a Deployment, a namespace does not
// have to exist, and its deletion deletes no other objects.
package apiserver
