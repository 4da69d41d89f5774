//! Figures and tables as people read them.

/// 1234567.8 as `1,234,568`.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The first column to the left, the others to the right.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
            let cell = if i == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            out.push_str(&cell);
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_grouped() {
        let grouped = [0.4, 999.0, 1_000.0, 1_234_567.8].map(thousands);
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,568"]);
    }

    #[test]
    fn columns_line_up() {
        let rows = [["", "a"], ["first", "1,000"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "           a\nfirst  1,000\n");
    }
}
