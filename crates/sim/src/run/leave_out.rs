//! Searches for the parts of a list that are enough for something.

use std::ops::Range;

/// Leaves out items, the last ones first and as many at a time as possible, as long as the others
/// are enough. An item that is left out can make an earlier decision obsolete: [`smallest`] repeats
/// the search.
pub fn leave_out<T: Clone>(items: &mut Vec<T>, is_enough: &mut dyn FnMut(&[T]) -> bool) {
    leave_out_of(items, 0..items.len(), is_enough);
}

/// Leaves out items until none can be left out.
pub fn smallest<T: Clone>(items: &mut Vec<T>, is_enough: &mut dyn FnMut(&[T]) -> bool) {
    loop {
        let before = items.len();
        leave_out(items, is_enough);
        if items.len() == before {
            return;
        }
    }
}

fn leave_out_of<T: Clone>(
    items: &mut Vec<T>,
    part: Range<usize>,
    is_enough: &mut dyn FnMut(&[T]) -> bool,
) {
    if part.is_empty() {
        return;
    }
    let others = [&items[..part.start], &items[part.end..]].concat();
    if is_enough(&others) {
        *items = others;
    } else if part.len() > 1 {
        let middle = part.start + part.len() / 2;
        leave_out_of(items, middle..part.end, is_enough);
        leave_out_of(items, part.start..middle, is_enough);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every set of 8 items decides by its bits whether it is enough, at random: leaving out more
    /// is not always worse.
    #[test]
    fn no_item_of_the_smallest_list_can_be_left_out() {
        for seed in 0..500_u64 {
            let is_enough = |items: &[usize]| {
                let set = items.iter().fold(0, |set, item| set | 1_u64 << item);
                let mixed = (set + 256 * seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                set == 255 || (mixed >> 32).is_multiple_of(3)
            };
            let mut items: Vec<usize> = (0..8).collect();
            smallest(&mut items, &mut |items| is_enough(items));
            assert!(is_enough(&items), "seed {seed}: {items:?}");
            for left_out in 0..items.len() {
                let mut others = items.clone();
                others.remove(left_out);
                assert!(!is_enough(&others), "seed {seed}: {others:?} of {items:?}");
            }
        }
    }
}
