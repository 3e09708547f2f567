package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// remove deletes an object, or marks it if it has finalizers. The lock is held.
func (s *Server) remove(t *table, key string, options *metav1.DeleteOptions) (*object, error) {
	o, ok := t.objects[key]
	if !ok {
		return nil, notFound(t.resource, key)
	}
	if err := preconditions(t.resource, o, options.Preconditions); err != nil {
		return nil, err
	}
	if len(options.DryRun) > 0 {
		return o, nil
	}
	finalizers := slices.Clone(o.meta().GetFinalizers())
	switch policyOf(options) {
	case metav1.DeletePropagationOrphan:
		if err := s.orphan(o.meta().GetUID()); err != nil {
			return nil, err
		}
	case metav1.DeletePropagationForeground:
		if len(s.dependents[o.meta().GetUID()]) > 0 &&
			!slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
			finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
		}
	}
	if len(finalizers) == 0 {
		return s.erase(t, key)
	}
	if o.meta().GetDeletionTimestamp() == nil {
		marked := o.meta().DeepCopy()
		now := metav1.NewTime(time.Now())
		marked.SetDeletionTimestamp(&now)
		marked.SetFinalizers(finalizers)
		// Controllers that ignore changes of the status see the mark by the generation.
		if generation := marked.GetGeneration(); generation > 0 {
			marked.SetGeneration(generation + 1)
		}
		var err error
		if o, err = s.commit(t, key, marked.Object); err != nil {
			return nil, err
		}
	}
	if slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
		return o, s.removeDependents(o.meta().GetUID(), metav1.DeletePropagationForeground)
	}
	return o, nil
}

func policyOf(options *metav1.DeleteOptions) metav1.DeletionPropagation {
	if options.PropagationPolicy != nil {
		return *options.PropagationPolicy
	}
	return metav1.DeletePropagationBackground
}

func preconditions(r *Resource, o *object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	meta := o.meta()
	if p.UID != nil && *p.UID != meta.GetUID() {
		return apierrors.NewConflict(r.GroupResource(), meta.GetName(), fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID of the object (%s)",
			*p.UID, meta.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != meta.GetResourceVersion() {
		return apierrors.NewConflict(r.GroupResource(), meta.GetName(), fmt.Errorf(
			"the resource version in the precondition (%s) does not match that of the object (%s)",
			*p.ResourceVersion, meta.GetResourceVersion()))
	}
	return nil
}

// erase removes an object from the storage, then its dependents without another owner, then the
// owners that wait for its deletion.
func (s *Server) erase(t *table, key string) (*object, error) {
	before := t.objects[key].meta()
	o, err := s.commit(t, key, nil)
	if err == nil && t.resource.Kind == customResourceDefinition {
		err = s.withdraw(o.content)
	}
	if err == nil {
		err = s.removeDependents(before.GetUID(), metav1.DeletePropagationBackground)
	}
	for _, owner := range before.GetOwnerReferences() {
		if err == nil {
			err = s.finishForeground(owner.UID)
		}
	}
	return o, err
}

// removeDependents deletes the objects whose owners are all deleted or being deleted.
func (s *Server) removeDependents(owner types.UID, policy metav1.DeletionPropagation) error {
	for _, r := range s.dependentsOf(owner) {
		o, ok := r.table.objects[r.key]
		if !ok || slices.ContainsFunc(o.meta().GetOwnerReferences(), s.lives) {
			continue
		}
		_, err := s.remove(r.table, r.key, &metav1.DeleteOptions{PropagationPolicy: &policy})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) lives(owner metav1.OwnerReference) bool {
	r, ok := s.byUID[owner.UID]
	return ok && !slices.Contains(
		r.table.objects[r.key].meta().GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// finishForeground deletes an owner that waits for its dependents if none is left.
func (s *Server) finishForeground(owner types.UID) error {
	r, ok := s.byUID[owner]
	if !ok || len(s.dependents[owner]) > 0 {
		return nil
	}
	return s.finalize(r, metav1.FinalizerDeleteDependents)
}

// finalize removes a finalizer from an object that is being deleted.
func (s *Server) finalize(r ref, finalizer string) error {
	u := r.table.objects[r.key].meta()
	finalizers := u.GetFinalizers()
	i := slices.Index(finalizers, finalizer)
	if u.GetDeletionTimestamp() == nil || i < 0 {
		return nil
	}
	if len(finalizers) == 1 {
		_, err := s.erase(r.table, r.key)
		return err
	}
	u = u.DeepCopy()
	u.SetFinalizers(slices.Delete(slices.Clone(finalizers), i, i+1))
	_, err := s.commit(r.table, r.key, u.Object)
	return err
}

// orphan removes the references of dependents to their owner.
func (s *Server) orphan(owner types.UID) error {
	for _, r := range s.dependentsOf(owner) {
		u := r.table.objects[r.key].meta().DeepCopy()
		u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(),
			func(o metav1.OwnerReference) bool { return o.UID == owner }))
		if _, err := s.commit(r.table, r.key, u.Object); err != nil {
			return err
		}
	}
	return nil
}

func notFound(r *Resource, key string) error {
	_, name, _ := strings.Cut(key, "/")
	return apierrors.NewNotFound(r.GroupResource(), name)
}
