"""What a memory holds, as one object: walked, sized, saved, loaded."""
