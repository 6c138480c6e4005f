//! Covering arrays: few rows in which all combinations of a few columns occur.
//!
//! Bugs that need one value each of two or three options are found by testing all pairs
//! or triples of values, and not all combinations: Kuhn, Wallace and Gallo, "Software
//! fault interactions and implications for software testing" (IEEE Transactions on
//! Software Engineering 30, 2004).

/// A choice of values for some of the columns. Each pair is a column and the value in
/// it.
type Combination = Vec<(usize, usize)>;

/// Returns few rows in which, for each group of columns, every combination of the
/// values of these columns occurs. Column `c` has the values from 0 to `values[c] - 1`.
/// A column that is in no group has the value 0.
///
/// A row takes the first combination that is missing, and then each further one that
/// agrees with it. That is not the smallest number of rows, but always the same rows.
pub(super) fn rows(values: &[usize], groups: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut missing: Vec<_> =
        groups.iter().flat_map(|group| combinations(values, group)).collect();
    let mut rows = Vec::new();
    while !missing.is_empty() {
        let mut row = vec![None; values.len()];
        for combination in &missing {
            let agrees = |(column, value): &(usize, usize)| {
                row[*column].is_none_or(|taken| taken == *value)
            };
            if combination.iter().all(agrees) {
                combination
                    .iter()
                    .for_each(|(column, value)| row[*column] = Some(*value));
            }
        }
        let row: Vec<_> = row.into_iter().map(Option::unwrap_or_default).collect();
        missing.retain(|combination| !contains(&row, combination));
        rows.push(row);
    }
    rows
}

/// Returns every set of `size` different columns out of `columns`.
pub(super) fn groups(columns: &[usize], size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        for mut rest in groups(&columns[at + 1..], size - 1) {
            rest.insert(0, *column);
            all.push(rest);
        }
    }
    all
}

fn combinations(values: &[usize], group: &[usize]) -> Vec<Combination> {
    group.iter().fold(vec![Vec::new()], |shorter, column| {
        let longer = shorter.iter().flat_map(|begin| {
            (0..values[*column]).map(|value| {
                let mut combination = begin.clone();
                combination.push((*column, value));
                combination
            })
        });
        longer.collect()
    })
}

fn contains(row: &[usize], combination: &Combination) -> bool {
    combination.iter().all(|(column, value)| row[*column] == *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [usize; 6] = [3, 2, 4, 2, 3, 2];

    #[test]
    fn groups_are_chosen_without_order() {
        let pairs = groups(&[0, 1, 2], 2);

        assert_eq!(pairs, [[0, 1], [0, 2], [1, 2]]);
    }

    #[test]
    fn every_combination_of_three_occurs() {
        let triples = groups(&[0, 1, 2, 3, 4, 5], 3);

        let rows = rows(&VALUES, &triples);

        for triple in &triples {
            for combination in combinations(&VALUES, triple) {
                let covers = |row: &Vec<usize>| contains(row, &combination);
                assert!(rows.iter().any(covers), "{combination:?}");
            }
        }
        assert!(rows.len() < VALUES.iter().product::<usize>() / 2, "{}", rows.len());
    }

    #[test]
    fn values_are_of_their_columns() {
        let rows = rows(&VALUES, &groups(&[0, 2], 2));

        assert_eq!(rows.len(), 12);
        let is_known = |row: &Vec<usize>| {
            row.len() == VALUES.len() && row.iter().zip(VALUES).all(|(it, of)| *it < of)
        };
        assert!(rows.iter().all(is_known));
    }
}
