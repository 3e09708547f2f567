//! The search of a grid for the points whose scores no other point improves.

use std::collections::{BTreeMap, BTreeSet};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// A point of a grid: the index of a value on each axis.
pub(crate) type Point = Vec<usize>;

/// The score of a point. Lower is better.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub(crate) struct Score {
    /// How far the objective is missed; 0 if it is met.
    pub(crate) violation: f64,
    /// The figure to minimize.
    pub(crate) cost: f64,
    /// The other figure of the front.
    pub(crate) risk: f64,
}

impl Score {
    /// Returns true if this score is no worse in cost and risk, and better in one of them.
    pub(crate) fn dominates(&self, other: &Score) -> bool {
        self.cost <= other.cost
            && self.risk <= other.risk
            && (self.cost < other.cost || self.risk < other.risk)
    }
}

/// The evaluated points. None: the point has no score, because its setting is invalid.
pub(crate) type Scores = BTreeMap<Point, Option<Score>>;

/// A grid and the limits of a search in it.
#[derive(Clone, Debug)]
pub(crate) struct Search<'a> {
    /// The number of values of each axis.
    pub(crate) grid: &'a [usize],
    /// The point where the search begins.
    pub(crate) start: &'a Point,
    /// The largest number of points to evaluate.
    pub(crate) most: usize,
    /// The seed of the points that are chosen at random.
    pub(crate) seed: u64,
}

/// The number of points whose neighbors are evaluated together. It does not depend on the number of
/// jobs, so that the result does not, either.
const EXPANDED_TOGETHER: usize = 4;

/// The number of points that are chosen at random together.
const CHOSEN_TOGETHER: usize = 16;

impl Search<'_> {
    /// The number of points of the grid.
    pub(crate) fn size(&self) -> u128 {
        self.grid.iter().fold(1, |size, values| size.saturating_mul(*values as u128))
    }

    /// Returns true if all points of the grid are evaluated.
    pub(crate) fn is_exhaustive(&self) -> bool {
        self.size() <= self.most as u128
    }

    /// Evaluates points of the grid: all of them, if the limit permits. Otherwise, a local search
    /// follows the best scores: it evaluates all points that differ from the best one on one axis,
    /// and the neighbors of other points that no point dominates. Where it can't go on, it
    /// continues with points that are chosen at random.
    ///
    /// `evaluate` returns the scores of points, in their order. If it returns fewer, the search
    /// ends.
    pub(crate) fn run(&self, evaluate: &mut dyn FnMut(&[Point]) -> Vec<Option<Score>>) -> Scores {
        let mut explored = Explored { scores: Scores::new(), most: self.most, evaluate };
        // An interrupted search has at least the start.
        let mut goes_on = explored.add([self.start.clone()].into());
        if self.is_exhaustive() {
            let all: Vec<Point> = all_points(self.grid);
            // In batches, so that an interrupted search has evaluated a part.
            let _ = goes_on && all.chunks(64).all(|batch| explored.add(batch.to_vec()));
            return explored.scores;
        }
        let mut expanded = BTreeSet::new();
        let mut random = Random::new(self.seed);
        while goes_on {
            let best = explored.best(&expanded);
            let batch: Vec<Point> = match best.is_empty() {
                true => (0..CHOSEN_TOGETHER).map(|_| random.point(self.grid)).collect(),
                false => {
                    let others = best.iter().skip(1).flat_map(|point| self.neighbors(point));
                    self.lines(&best[0]).into_iter().chain(others).collect()
                }
            };
            expanded.extend(best);
            goes_on = explored.add(batch);
        }
        explored.scores
    }

    /// The points that differ on one axis.
    fn lines(&self, point: &Point) -> Vec<Point> {
        let axes = self.grid.iter().enumerate();
        axes.flat_map(|(axis, values)| (0..*values).map(move |value| moved(point, axis, value)))
            .collect()
    }

    /// The points that are one value away on one axis.
    fn neighbors(&self, point: &Point) -> Vec<Point> {
        let mut neighbors = Vec::new();
        for (axis, value) in point.iter().enumerate() {
            let below = value.checked_sub(1);
            let above = Some(value + 1).filter(|above| *above < self.grid[axis]);
            let values = below.into_iter().chain(above);
            neighbors.extend(values.map(|value| moved(point, axis, value)));
        }
        neighbors
    }
}

/// The point with another value on one axis.
fn moved(point: &Point, axis: usize, value: usize) -> Point {
    let mut moved = point.clone();
    moved[axis] = value;
    moved
}

fn all_points(grid: &[usize]) -> Vec<Point> {
    grid.iter().fold(vec![Point::new()], |points, values| {
        let longer = |point: Point| {
            (0..*values).map(move |value| {
                let mut longer = point.clone();
                longer.push(value);
                longer
            })
        };
        points.into_iter().flat_map(longer).collect()
    })
}

struct Explored<'e> {
    scores: Scores,
    most: usize,
    evaluate: &'e mut dyn FnMut(&[Point]) -> Vec<Option<Score>>,
}

impl Explored<'_> {
    /// Evaluates new points. Returns false if the search ends.
    fn add(&mut self, mut points: Vec<Point>) -> bool {
        let mut known = BTreeSet::new();
        points.retain(|point| !self.scores.contains_key(point) && known.insert(point.clone()));
        points.truncate(self.most - self.scores.len());
        let scores = (self.evaluate)(&points);
        let is_complete = scores.len() == points.len();
        self.scores.extend(points.into_iter().zip(scores));
        is_complete && self.scores.len() < self.most
    }

    /// The best points whose neighbors have not been evaluated.
    fn best(&self, expanded: &BTreeSet<Point>) -> Vec<Point> {
        let scored = || self.scores.iter().filter_map(|(point, score)| Some((point, (*score)?)));
        let is_better = |other: &Score, score: &Score| {
            other.violation <= score.violation && other.dominates(score)
        };
        let mut best: Vec<(&Point, Score)> = scored()
            .filter(|(point, _)| !expanded.contains(*point))
            .filter(|(_, score)| !scored().any(|(_, other)| is_better(&other, score)))
            .collect();
        best.sort_by(|(one, a), (other, b)| {
            let order = a.violation.total_cmp(&b.violation);
            order
                .then(a.cost.total_cmp(&b.cost))
                .then(a.risk.total_cmp(&b.risk))
                .then(one.cmp(other))
        });
        best.into_iter().take(EXPANDED_TOGETHER).map(|(point, _)| point.clone()).collect()
    }
}

/// The axes on which a point differs from `start`.
pub(crate) fn changed(point: &Point, start: &Point) -> Vec<usize> {
    (0..point.len()).filter(|axis| point[*axis] != start[*axis]).collect()
}

/// The points with a score, from the cheapest on. Of points with the same score, the one with the
/// fewest changes from `start` is the first.
pub(crate) fn by_cost<'s>(scores: &'s Scores, start: &Point) -> Vec<(&'s Point, Score)> {
    let changes = |point: &Point| changed(point, start).len();
    let mut sorted: Vec<(&Point, Score)> =
        scores.iter().filter_map(|(point, score)| Some((point, (*score)?))).collect();
    sorted.sort_by(|(one, a), (other, b)| {
        let order = a.cost.total_cmp(&b.cost).then(a.risk.total_cmp(&b.risk));
        order.then(changes(one).cmp(&changes(other))).then(one.cmp(other))
    });
    sorted
}

/// The points that no other point dominates, by cost. Of points with the same score, the one with
/// the fewest changes from `start`.
pub(crate) fn front(scores: &Scores, start: &Point) -> Vec<Point> {
    let mut front = Vec::new();
    let mut lowest = f64::INFINITY;
    for (point, score) in by_cost(scores, start) {
        if score.risk < lowest {
            lowest = score.risk;
            front.push(point.clone());
        }
    }
    front
}

/// At most this number of items, evenly, with both ends.
pub(crate) fn spread<T: Copy>(items: &[T], most: usize) -> Vec<T> {
    let count = items.len().min(most);
    let index = |n: usize| if count < 2 { 0 } else { n * (items.len() - 1) / (count - 1) };
    (0..count).map(|n| items[index(n)]).collect()
}

/// Points that are chosen at random, the same for each seed.
struct Random(ChaCha8Rng);

impl Random {
    fn new(seed: u64) -> Random {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Random(ChaCha8Rng::from_seed(key))
    }

    fn point(&mut self, grid: &[usize]) -> Point {
        let below = |limit: &usize| {
            let wide = u128::from(self.0.next_u64()) * *limit as u128;
            (wide >> 64) as usize
        };
        grid.iter().map(below).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two axes trade cost for risk, and the third one only costs.
    fn score(point: &Point) -> Option<Score> {
        let [a, b, c] = [point[0], point[1], point[2]].map(|index| index as f64);
        let (cost, risk) = (a * 2.0 + b * b + c, (9.0 - a).powi(2) + (12.0 - b) * 3.0);
        Some(Score { violation: (risk - 60.0).max(0.0), cost, risk }).filter(|_| point[0] != 4)
    }

    fn scores(points: &[Point]) -> Vec<Option<Score>> {
        points.iter().map(score).collect()
    }

    const GRID: [usize; 3] = [10, 13, 6];

    fn search(start: &Point, most: usize) -> Search<'_> {
        Search { grid: &GRID, start, most, seed: 1 }
    }

    fn best(found: &Scores) -> Option<Score> {
        let scores = found.values().copied().flatten().filter(|score| score.violation == 0.0);
        scores.min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    #[test]
    fn a_small_grid_is_searched_exhaustively() {
        let start = vec![9, 12, 5];
        let found = search(&start, 10 * 13 * 6).run(&mut |points| scores(points));
        assert_eq!(found.len(), 780);
        for point in front(&found, &start) {
            let own = found[&point].expect("a score");
            let others = found.values().copied().flatten();
            assert!(!others.into_iter().any(|other| other.dominates(&own)), "{point:?}");
        }
    }

    #[test]
    fn a_local_search_finds_the_best_point_of_a_large_grid() {
        let start = vec![9, 12, 5];
        let all = search(&start, 780).run(&mut |points| scores(points));
        let some = search(&start, 200).run(&mut |points| scores(points));
        assert_eq!(some.len(), 200);
        assert_eq!(best(&some), best(&all));
    }

    #[test]
    fn no_point_is_evaluated_twice_and_none_beyond_the_limit() {
        let start = vec![0, 0, 0];
        let mut evaluated = BTreeSet::new();
        let found = search(&start, 300).run(&mut |points| {
            assert!(points.iter().all(|point| evaluated.insert(point.clone())));
            scores(points)
        });
        assert_eq!((found.len(), evaluated.len()), (300, 300));
    }

    #[test]
    fn a_search_that_is_interrupted_keeps_what_it_has_found() {
        let start = vec![0, 0, 0];
        let mut left = 40;
        let found = search(&start, 500).run(&mut |points| {
            let mut scores = scores(points);
            scores.truncate(left);
            left -= scores.len();
            scores
        });
        assert_eq!(found.len(), 40);
    }

    #[test]
    fn the_front_has_the_point_with_the_fewest_changes() {
        let same = Some(Score { violation: 0.0, cost: 1.0, risk: 1.0 });
        let scores = Scores::from([(vec![0, 0], same), (vec![0, 1], same), (vec![1, 1], same)]);
        assert_eq!(front(&scores, &vec![1, 1]), [vec![1, 1]]);
        assert_eq!(front(&scores, &vec![0, 1]), [vec![0, 1]]);
    }
}
